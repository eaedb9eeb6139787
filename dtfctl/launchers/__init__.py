"""Where processes are made. base.py is the seam; local.py and fake.py implement it; keeper.py runs beside the tasks."""

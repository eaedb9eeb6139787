"""Where processes are made. base.py is the seam; local.py and fake.py implement it; keeper/ runs beside the tasks."""

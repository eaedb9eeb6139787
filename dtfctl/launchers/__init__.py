"""Where processes are made. base.py, pipe.py and provision.py are the seams; keeper/ runs beside the tasks."""

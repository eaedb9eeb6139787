"""What follows from a plan, and from a change of it: command lines, environments, differences. Pure."""

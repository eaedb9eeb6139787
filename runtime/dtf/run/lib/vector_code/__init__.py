"""Machine code made at run time for loops over float32 arrays: `assembler`, `loops`."""

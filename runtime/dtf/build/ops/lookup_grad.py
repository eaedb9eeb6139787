"""Lookup tables pass no gradients on."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    *(
        "HashTable HashTableV2 MutableDenseHashTable MutableDenseHashTableV2 MutableHashTable "
        "MutableHashTableOfTensors MutableHashTableOfTensorsV2 MutableHashTableV2 InitializeTable InitializeTableV2 "
        "InitializeTableFromTextFile InitializeTableFromTextFileV2 "
        "LookupTableFind LookupTableFindV2 LookupTableInsert LookupTableInsertV2 LookupTableImport LookupTableImportV2 "
        "LookupTableRemoveV2 LookupTableSize LookupTableSizeV2 LookupTableExport LookupTableExportV2"
    ).split()
)

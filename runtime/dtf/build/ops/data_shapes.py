"""Static shapes of the nodes of datasets and iterators; the public functions are in the other modules named data."""

from __future__ import annotations

from dtf.build.shape_rules import no_outputs, scalar, shape_rule, unknown

shape_rule(
    "AssertCardinalityDataset", "BatchDataset", "BatchDatasetV2", "CacheDataset", "ConcatenateDataset",
    "DatasetCardinality",
    "DirectedInterleaveDataset", "FilterDataset", "FinalizeDataset", "GroupByWindowDataset", "UniqueDataset",
    "FixedLengthRecordDataset", "FixedLengthRecordDatasetV2", "FlatMapDataset", "GeneratorDataset",
    "IgnoreErrorsDataset", "InterleaveDataset", "LegacyParallelInterleaveDatasetV2", "MapAndBatchDataset", "MapDataset",
    "ModelDataset", "OptimizeDataset", "OptionsDataset", "PaddedBatchDataset", "PaddedBatchDatasetV2",
    "ParallelInterleaveDataset", "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3",
    "ParallelInterleaveDatasetV4", "ParallelMapDataset", "ParallelMapDatasetV2", "PrefetchDataset", "RandomDataset",
    "RangeDataset", "SparseTensorSliceDataset", "SqlDataset",
    "RepeatDataset", "RewriteDataset", "ScanDataset", "ShardDataset", "ShuffleAndRepeatDataset", "ShuffleDataset",
    "SkipDataset", "TFRecordDataset", "TakeDataset", "TakeWhileDataset", "TensorDataset", "TensorSliceDataset",
    "TextLineDataset", "UnbatchDataset", "WindowDataset", "ZipDataset",
    "Iterator", "IteratorFromStringHandle", "IteratorFromStringHandleV2", "IteratorGetNextAsOptional",
    "IteratorToStringHandle", "IteratorV2", "OneShotIterator",
)(scalar)  # fmt: skip

shape_rule("DatasetToTFRecord", "DeserializeIterator", "MakeIterator")(no_outputs)
shape_rule("SerializeIterator")(unknown)  # TensorFlow's are vectors


@shape_rule("IteratorGetNext", "IteratorGetNextSync", "ReduceDataset", "DatasetToSingleElement")
def _(op):
    return op.get_attr("output_shapes")

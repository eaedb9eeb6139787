"""Datasets and iterators have no gradients."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    *(
        "AssertCardinalityDataset DatasetToTFRecord RandomDataset SparseTensorSliceDataset SqlDataset "
        "BatchDataset BatchDatasetV2 CacheDataset ConcatenateDataset DeserializeIterator FilterDataset "
        "FinalizeDataset FixedLengthRecordDataset FixedLengthRecordDatasetV2 FlatMapDataset GeneratorDataset "
        "IgnoreErrorsDataset InterleaveDataset Iterator IteratorFromStringHandle IteratorFromStringHandleV2 "
        "IteratorGetNext IteratorGetNextAsOptional IteratorGetNextSync IteratorToStringHandle IteratorV2 "
        "LegacyParallelInterleaveDatasetV2 MakeIterator MapAndBatchDataset MapDataset ModelDataset "
        "OneShotIterator OptimizeDataset OptionsDataset PaddedBatchDataset PaddedBatchDatasetV2 "
        "ParallelInterleaveDataset ParallelInterleaveDatasetV2 ParallelInterleaveDatasetV3 "
        "ParallelInterleaveDatasetV4 ParallelMapDataset ParallelMapDatasetV2 PrefetchDataset RangeDataset "
        "ReduceDataset RepeatDataset RewriteDataset ScanDataset SerializeIterator ShardDataset "
        "ShuffleAndRepeatDataset ShuffleDataset SkipDataset TFRecordDataset TakeDataset TakeWhileDataset "
        "TensorDataset TensorSliceDataset TextLineDataset DatasetCardinality "
        "DatasetToSingleElement DirectedInterleaveDataset GroupByWindowDataset UniqueDataset UnbatchDataset "
        "WindowDataset ZipDataset"
    ).split()
)

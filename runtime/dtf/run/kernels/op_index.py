"""Which modules of this package register the kernels of an op: generated, not edited.

Written by `python -m tests.runtime.kernel_index`; a test compares it with what the modules register.
"""

from __future__ import annotations

OPS = {
    "array": """
        Bitcast BroadcastArgs BroadcastGradientArgs BroadcastTo CheckNumerics Const DeepCopy Empty EnsureShape
        ExpandDims Fill GuaranteeConst Identity IdentityN OneHot OnesLike Placeholder PlaceholderV2
        PlaceholderWithDefault PreventGradient Rank RefIdentity Reshape Shape ShapeN Size Snapshot Squeeze StopGradient
        ZerosLike
    """,
    "array_rare": """
        DataFormatDimMap DataFormatVecPermute EditDistance InplaceAdd InplaceSub InplaceUpdate UnravelIndex
    """,
    "audio": """
        AudioSpectrogram DecodeWav EncodeWav Mfcc
    """,
    "bessel": """
        BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1
    """,
    "candidate_sampling": """
        AllCandidateSampler ComputeAccidentalHits FixedUnigramCandidateSampler LearnedUnigramCandidateSampler
        LogUniformCandidateSampler ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler
    """,
    "collective": """
        CollectiveBcastRecv CollectiveBcastRecvV2 CollectiveBcastSend CollectiveBcastSendV2 CollectiveGather
        CollectiveGatherV2 CollectiveReduce CollectiveReduceV2
    """,
    "comm": """
        _Arg _ArrayToList _DeviceCopy _HostRecv _HostSend _ListToArray _Recv _Retval _Send
    """,
    "control_flow": """
        Abort Assert Case ControlTrigger Enter Exit FakeParam If LoopCond Merge NextIteration NoOp PartitionedCall
        RefEnter RefExit RefMerge RefNextIteration RefSelect RefSwitch StatefulPartitionedCall StatelessCase
        StatelessIf StatelessWhile Switch ToBool While
    """,
    "conv": """
        Conv2D Conv2DBackpropFilter Conv2DBackpropInput DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter
        DepthwiseConv2dNativeBackpropInput
    """,
    "counting": """
        Bincount Bucketize DenseBincount HistogramFixedWidth RaggedBincount SparseBincount
    """,
    "ctc": """
        CTCBeamSearchDecoder CTCGreedyDecoder CTCLoss
    """,
    "data": """
        BatchDataset BatchDatasetV2 CacheDataset ConcatenateDataset DatasetCardinality DatasetToSingleElement
        DirectedInterleaveDataset FilterDataset FinalizeDataset FixedLengthRecordDataset FixedLengthRecordDatasetV2
        FlatMapDataset GeneratorDataset GroupByWindowDataset IgnoreErrorsDataset InterleaveDataset
        LegacyParallelInterleaveDatasetV2 MapAndBatchDataset MapDataset ModelDataset OptimizeDataset OptionsDataset
        PaddedBatchDataset PaddedBatchDatasetV2 ParallelInterleaveDataset ParallelInterleaveDatasetV2
        ParallelInterleaveDatasetV3 ParallelInterleaveDatasetV4 ParallelMapDataset ParallelMapDatasetV2 PrefetchDataset
        RangeDataset ReduceDataset RepeatDataset RewriteDataset ScanDataset ShardDataset ShuffleAndRepeatDataset
        ShuffleDataset SkipDataset TFRecordDataset TakeDataset TakeWhileDataset TensorDataset TensorSliceDataset
        TextLineDataset UnbatchDataset UniqueDataset WindowDataset ZipDataset
    """,
    "data_flow": """
        AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep AccumulatorTakeGradient
        ConditionalAccumulator DeleteSessionTensor FIFOQueue FIFOQueueV2 GetSessionHandle GetSessionTensor
        PaddingFIFOQueue PaddingFIFOQueueV2 PriorityQueue PriorityQueueV2 QueueClose QueueCloseV2 QueueDequeue
        QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo QueueDequeueUpToV2 QueueDequeueV2 QueueEnqueue
        QueueEnqueueMany QueueEnqueueManyV2 QueueEnqueueV2 QueueIsClosed QueueIsClosedV2 QueueSize QueueSizeV2
        RandomShuffleQueue RandomShuffleQueueV2 ResourceAccumulatorApplyGradient ResourceAccumulatorNumAccumulated
        ResourceAccumulatorSetGlobalStep ResourceAccumulatorTakeGradient ResourceConditionalAccumulator
        SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient SparseConditionalAccumulator
    """,
    "data_iterators": """
        DeserializeIterator Iterator IteratorFromStringHandle IteratorFromStringHandleV2 IteratorGetNext
        IteratorGetNextAsOptional IteratorGetNextSync IteratorToStringHandle IteratorV2 MakeIterator OneShotIterator
        SerializeIterator
    """,
    "data_sources": """
        AssertCardinalityDataset DatasetToTFRecord RandomDataset SparseTensorSliceDataset SqlDataset
    """,
    "debug": """
        CheckNumericsV2 Copy CopyHost DebugGradientIdentity DebugIdentity DebugIdentityV2 DebugIdentityV3 DebugNanCount
    """,
    "diagonals": """
        BatchMatrixBandPart BatchMatrixDiag BatchMatrixDiagPart BatchMatrixSetDiag Diag DiagPart MatrixBandPart
        MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixSetDiag
        MatrixSetDiagV2 MatrixSetDiagV3
    """,
    "fake_quant": """
        FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsGradient
        FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient
    """,
    "fractional_pooling": """
        FractionalAvgPool FractionalAvgPoolGrad FractionalMaxPool FractionalMaxPoolGrad
    """,
    "fused": """
        FusedPadConv2D FusedResizeAndPadConv2D _FusedBatchNormEx _FusedConv2D _FusedDepthwiseConv2dNative _FusedMatMul
        _UnaryOpsComposition
    """,
    "gathering": """
        DynamicPartition DynamicStitch Gather GatherNd GatherV2 ParallelDynamicStitch ScatterNd ScatterNdNonAliasingAdd
        TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate
    """,
    "image_boxes": """
        CombinedNonMaxSuppression NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4
        NonMaxSuppressionV5 NonMaxSuppressionWithOverlaps SampleDistortedBoundingBox SampleDistortedBoundingBoxV2
    """,
    "image_color": """
        AdjustContrastv2 AdjustHue AdjustSaturation DrawBoundingBoxes DrawBoundingBoxesV2 HSVToRGB RGBToHSV
    """,
    "image_files": """
        DecodeAndCropJpeg DecodeBmp DecodeGif DecodeImage DecodeJpeg DecodePng EncodeJpeg EncodePng ExtractJpegShape
    """,
    "image_resize": """
        CropAndResize CropAndResizeGradBoxes CropAndResizeGradImage ExtractGlimpse ExtractGlimpseV2
        ImageProjectiveTransformV2 ImageProjectiveTransformV3 ResizeArea ResizeBicubic ResizeBicubicGrad ResizeBilinear
        ResizeBilinearGrad ResizeNearestNeighbor ResizeNearestNeighborGrad ScaleAndTranslate ScaleAndTranslateGrad
    """,
    "integrals": """
        Dawsn Expint FresnelCos FresnelSin IgammaGradA RandomGammaGrad Spence
    """,
    "io": """
        MatchingFiles ParseTensor PyFunc PyFuncStateless ReadFile Restore RestoreSlice RestoreV2 SerializeTensor
        ShardedFilename ShardedFilespec WriteFile
    """,
    "joining": """
        Concat ConcatOffset ConcatV2 MirrorPad MirrorPadGrad Pack Pad PadV2 ParallelConcat Split SplitV Tile Unpack
        _ParallelConcatStart _ParallelConcatUpdate
    """,
    "linalg": """
        BatchCholesky BatchMatMul BatchMatMulV2 BatchMatMulV3 BatchMatrixDeterminant BatchMatrixInverse
        BatchMatrixSolve BatchMatrixSolveLs BatchMatrixTriangularSolve BatchSelfAdjointEig BatchSelfAdjointEigV2
        BatchSvd Cholesky Cross Einsum LogMatrixDeterminant MatMul MatrixDeterminant MatrixInverse MatrixSolve
        MatrixSolveLs MatrixTriangularSolve Qr SelfAdjointEig SelfAdjointEigV2 SparseMatMul Svd
    """,
    "logging": """
        Print PrintV2 Timestamp
    """,
    "lookup_table": """
        HashTable HashTableV2 InitializeTable InitializeTableFromTextFile InitializeTableFromTextFileV2
        InitializeTableV2 LookupTableExport LookupTableExportV2 LookupTableFind LookupTableFindV2 LookupTableImport
        LookupTableImportV2 LookupTableInsert LookupTableInsertV2 LookupTableRemoveV2 LookupTableSize LookupTableSizeV2
        MutableDenseHashTable MutableDenseHashTableV2 MutableHashTable MutableHashTableOfTensors
        MutableHashTableOfTensorsV2 MutableHashTableV2
    """,
    "math": """
        Abs AccumulateNV2 Acos Acosh Add AddN AddV2 Angle ApproximateEqual Asin Asinh Atan Atan2 Atanh Betainc
        BitwiseAnd BitwiseOr BitwiseXor Cast Ceil ClipByValue Complex ComplexAbs Conj Cos Cosh Digamma Div DivNoNan
        Equal Erf Erfc Erfinv Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Igamma Igammac Imag Inv InvGrad
        Invert IsFinite IsInf IsNan LeftShift Less LessEqual Lgamma LinSpace Log Log1p LogicalAnd LogicalNot LogicalOr
        Maximum Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual Polygamma PopulationCount Pow Range Real RealDiv
        Reciprocal ReciprocalGrad RightShift Rint Round Rsqrt RsqrtGrad Sigmoid SigmoidGrad Sign Sin Sinh Sqrt SqrtGrad
        Square SquaredDifference Sub Tan Tanh TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta _HostCast
    """,
    "matrix_functions": """
        BandedTriangularSolve BatchCholeskyGrad CholeskyGrad Eig Lu MatrixLogarithm MatrixSquareRoot TridiagonalMatMul
        TridiagonalSolve
    """,
    "nn": """
        BiasAdd BiasAddGrad BiasAddV1 Elu EluGrad FusedBatchNorm FusedBatchNormGrad FusedBatchNormGradV2
        FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3 InTopK InTopKV2 L2Loss LRN LRNGrad LeakyRelu
        LeakyReluGrad LogSoftmax NthElement Relu Relu6 Relu6Grad ReluGrad Selu SeluGrad Softmax
        SoftmaxCrossEntropyWithLogits Softplus SoftplusGrad Softsign SoftsignGrad SparseSoftmaxCrossEntropyWithLogits
        TopK TopKV2
    """,
    "old_names": """
        AdjustContrast BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad Fact RandomCrop TileGrad
    """,
    "onednn_kernels": """
        ApplyAdam AvgPool AvgPoolGrad BatchMatMul BatchMatMulV2 Conv2D Conv2DBackpropFilter Conv2DBackpropInput
        DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput FusedBatchNorm
        FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3 LogSoftmax
        MatMul MaxPool MaxPoolGrad ReluGrad ResourceApplyAdam Softmax SparseSoftmaxCrossEntropyWithLogits
    """,
    "parsing": """
        DecodeJSONExample ParseExample ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample
        ParseSingleSequenceExample
    """,
    "pooling": """
        AvgPool AvgPoolGrad MaxPool MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradV2 MaxPoolGradV2 MaxPoolV2
    """,
    "quantization": """
        Dequantize QuantizeDownAndShrinkRange QuantizeV2 QuantizedAvgPool QuantizedBiasAdd QuantizedConcat
        QuantizedConv2D QuantizedMatMul QuantizedMaxPool QuantizedRelu QuantizedRelu6 QuantizedReluX QuantizedReshape
        RequantizationRange Requantize
    """,
    "quantize_dequantize": """
        QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 QuantizeAndDequantizeV4Grad
    """,
    "ragged": """
        RaggedFillEmptyRows RaggedFillEmptyRowsGrad RaggedGather RaggedRange RaggedTensorToSparse RaggedTensorToTensor
    """,
    "ragged_variants": """
        RaggedTensorFromVariant RaggedTensorToVariant
    """,
    "random": """
        Multinomial ParameterizedTruncatedNormal RandomGamma RandomPoisson RandomPoissonV2 RandomShuffle
        RandomStandardNormal RandomUniform RandomUniformInt StatelessMultinomial StatelessRandomBinomial
        StatelessRandomGammaV2 StatelessRandomGammaV3 StatelessRandomGetAlg StatelessRandomGetKeyCounter
        StatelessRandomGetKeyCounterAlg StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomPoisson
        StatelessRandomUniform StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 StatelessRandomUniformInt
        StatelessRandomUniformIntV2 StatelessRandomUniformV2 StatelessShuffle StatelessTruncatedNormal
        StatelessTruncatedNormalV2 TruncatedNormal
    """,
    "random_generator": """
        NonDeterministicInts RngReadAndSkip RngSkip StatefulRandomBinomial StatefulStandardNormalV2
        StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulUniformInt
    """,
    "readers": """
        FixedLengthRecordReader FixedLengthRecordReaderV2 IdentityReader IdentityReaderV2 ReaderNumRecordsProduced
        ReaderNumRecordsProducedV2 ReaderNumWorkUnitsCompleted ReaderNumWorkUnitsCompletedV2 ReaderRead ReaderReadUpTo
        ReaderReadUpToV2 ReaderReadV2 ReaderReset ReaderResetV2 ReaderRestoreState ReaderRestoreStateV2
        ReaderSerializeState ReaderSerializeStateV2 TFRecordReader TFRecordReaderV2 TextLineReader TextLineReaderV2
        WholeFileReader WholeFileReaderV2
    """,
    "rearranging": """
        BatchToSpace BatchToSpaceND ConjugateTranspose DepthToSpace ExtractImagePatches InvertPermutation Reverse
        ReverseSequence ReverseV2 Roll SpaceToBatch SpaceToBatchND SpaceToDepth Transpose
    """,
    "reductions": """
        All Any ArgMax ArgMin Cumprod Cumsum CumulativeLogsumexp EuclideanNorm Max Mean Min Prod Sum
    """,
    "rnn": """
        BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 GRUBlockCell GRUBlockCellGrad LSTMBlockCell
        LSTMBlockCellGrad
    """,
    "saving": """
        MergeV2Checkpoints Save SaveIncrement SaveSlices SaveV2
    """,
    "searching": """
        ListDiff LowerBound Select SelectV2 Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 UpperBound Where
    """,
    "segment": """
        SegmentMax SegmentMaxV2 SegmentMean SegmentMin SegmentMinV2 SegmentProd SegmentProdV2 SegmentSum SegmentSumV2
        SparseSegmentMean SparseSegmentMeanGrad SparseSegmentMeanGradV2 SparseSegmentMeanWithNumSegments
        SparseSegmentSqrtN SparseSegmentSqrtNGrad SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments
        SparseSegmentSum SparseSegmentSumGrad SparseSegmentSumGradV2 SparseSegmentSumWithNumSegments UnsortedSegmentMax
        UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum
    """,
    "sets": """
        DenseToDenseSetOperation DenseToSparseSetOperation SetSize SparseToSparseSetOperation
    """,
    "signal": """
        BatchFFT BatchFFT2D BatchFFT3D BatchIFFT BatchIFFT2D BatchIFFT3D FFT FFT2D FFT3D IFFT IFFT2D IFFT3D IRFFT
        IRFFT2D IRFFT3D RFFT RFFT2D RFFT3D
    """,
    "slicing": """
        Slice StridedSlice StridedSliceAssign StridedSliceGrad TensorStridedSliceUpdate
    """,
    "sparse": """
        SparseConcat SparseFillEmptyRows SparseFillEmptyRowsGrad SparseReduceSum SparseReorder SparseReshape
        SparseTensorDenseAdd SparseTensorDenseMatMul SparseToDense
    """,
    "sparse_arithmetic": """
        SparseAdd SparseAddGrad SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseReduceMax
        SparseReduceMaxSparse SparseReduceSumSparse SparseSlice SparseSliceGrad SparseSoftmax SparseSparseMaximum
        SparseSparseMinimum SparseSplit
    """,
    "sparse_cross": """
        SparseCross SparseCrossV2
    """,
    "sparse_messages": """
        AddManySparseToTensorsMap AddSparseToTensorsMap DeserializeManySparse DeserializeSparse SerializeManySparse
        SerializeSparse TakeManySparseFromTensorsMap
    """,
    "staging": """
        Barrier BarrierClose BarrierIncompleteSize BarrierInsertMany BarrierReadySize BarrierTakeMany ConsumeMutexLock
        MapClear MapIncompleteSize MapPeek MapSize MapStage MapUnstage MapUnstageNoKey MutexLock MutexV2
        OrderedMapClear OrderedMapIncompleteSize OrderedMapPeek OrderedMapSize OrderedMapStage OrderedMapUnstage
        OrderedMapUnstageNoKey Stage StageClear StagePeek StageSize Unstage
    """,
    "state": """
        Assign AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp AssignVariableOp CountUpTo DestroyResourceOp
        DestroyTemporaryVariable IsVariableInitialized ReadVariableOp ResourceCountUpTo ResourceGather ResourceGatherNd
        ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin ResourceScatterMul
        ResourceScatterNdAdd ResourceScatterNdMax ResourceScatterNdMin ResourceScatterNdSub ResourceScatterNdUpdate
        ResourceScatterSub ResourceScatterUpdate ResourceStridedSliceAssign ScatterAdd ScatterDiv ScatterMax ScatterMin
        ScatterMul ScatterNdAdd ScatterNdMax ScatterNdMin ScatterNdSub ScatterNdUpdate ScatterSub ScatterUpdate
        TemporaryVariable VarHandleOp VarIsInitializedOp Variable VariableShape VariableV2 _ReadVariablesOp
        _VarHandlesOp
    """,
    "string": """
        AsString DecodeBase64 DecodeCSV DecodeRaw EncodeBase64 ReduceJoin RegexFullMatch RegexReplace
        StaticRegexFullMatch StaticRegexReplace StringJoin StringLength StringLower StringSplit StringSplitV2
        StringStrip StringToNumber StringUpper Substr
    """,
    "string_hashing": """
        Fingerprint StringToHashBucket StringToHashBucketFast StringToHashBucketStrong
    """,
    "string_pieces": """
        DecodeCompressed DecodePaddedRaw StringFormat StringNGrams UnsortedSegmentJoin
    """,
    "summary": """
        AudioSummary AudioSummaryV2 HistogramSummary ImageSummary MergeSummary ScalarSummary TensorSummary
        TensorSummaryV2
    """,
    "tensor_array": """
        Stack StackClose StackCloseV2 StackPop StackPopV2 StackPush StackPushV2 StackV2 TensorArray TensorArrayClose
        TensorArrayCloseV2 TensorArrayCloseV3 TensorArrayConcat TensorArrayConcatV2 TensorArrayConcatV3
        TensorArrayGather TensorArrayGatherV2 TensorArrayGatherV3 TensorArrayGrad TensorArrayGradV2 TensorArrayGradV3
        TensorArrayGradWithShape TensorArrayPack TensorArrayRead TensorArrayReadV2 TensorArrayReadV3 TensorArrayScatter
        TensorArrayScatterV2 TensorArrayScatterV3 TensorArraySize TensorArraySizeV2 TensorArraySizeV3 TensorArraySplit
        TensorArraySplitV2 TensorArraySplitV3 TensorArrayUnpack TensorArrayV2 TensorArrayV3 TensorArrayWrite
        TensorArrayWriteV2 TensorArrayWriteV3
    """,
    "tensor_list": """
        EmptyTensorList OptionalFromValue OptionalGetValue OptionalHasValue OptionalNone TensorListConcat
        TensorListConcatLists TensorListConcatV2 TensorListElementShape TensorListFromTensor TensorListGather
        TensorListGetItem TensorListLength TensorListPopBack TensorListPushBack TensorListPushBackBatch
        TensorListReserve TensorListResize TensorListScatter TensorListScatterIntoExistingList TensorListScatterV2
        TensorListSetItem TensorListSplit TensorListStack
    """,
    "training": """
        ApplyAdaMax ApplyAdadelta ApplyAdagrad ApplyAdagradDA ApplyAdagradV2 ApplyAdam ApplyAddSign
        ApplyCenteredRMSProp ApplyFtrl ApplyFtrlV2 ApplyGradientDescent ApplyMomentum ApplyPowerSign
        ApplyProximalAdagrad ApplyProximalGradientDescent ApplyRMSProp ResourceApplyAdaMax ResourceApplyAdadelta
        ResourceApplyAdagrad ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdam
        ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp ResourceApplyFtrl
        ResourceApplyFtrlV2 ResourceApplyGradientDescent ResourceApplyKerasMomentum ResourceApplyMomentum
        ResourceApplyPowerSign ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp
        ResourceSparseApplyAdadelta ResourceSparseApplyAdagrad ResourceSparseApplyAdagradDA
        ResourceSparseApplyAdagradV2 ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl
        ResourceSparseApplyFtrlV2 ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum
        ResourceSparseApplyProximalAdagrad ResourceSparseApplyProximalGradientDescent ResourceSparseApplyRMSProp
        SparseApplyAdadelta SparseApplyAdagrad SparseApplyAdagradDA SparseApplyAdagradV2 SparseApplyCenteredRMSProp
        SparseApplyFtrl SparseApplyFtrlV2 SparseApplyMomentum SparseApplyProximalAdagrad
        SparseApplyProximalGradientDescent SparseApplyRMSProp
    """,
    "unicode": """
        UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeTranscode
    """,
    "vocabularies": """
        GenerateVocabRemapping LoadAndRemapMatrix
    """,
    "volume": """
        AvgPool3D AvgPool3DGrad Conv3D Conv3DBackpropFilter Conv3DBackpropFilterV2 Conv3DBackpropInput
        Conv3DBackpropInputV2 Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput ExtractVolumePatches
        MaxPool3D MaxPool3DGrad MaxPool3DGradGrad MaxPoolGradGradWithArgmax MaxPoolGradWithArgmax MaxPoolWithArgmax
    """,
    "work_queue": """
        WorkQueue WorkQueueConfirm WorkQueueCreate WorkQueueExport WorkQueueRelease WorkQueueRestore WorkQueueTake
    """,
}
"""Module -> its ops, one after the other."""

"""The keys that the parser of Slurm 26.05 accepts."""


def _keys(text: str) -> dict[str, str]:
    """The spelling of each key by its lower-case form."""
    return {word.lower(): word for word in text.split()}


SLURM = _keys(
    """
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageHost
    AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageTRES
    AccountingStorageType AccountingStorageUser AccountingStoreFlags AccountingStoreJobComment
    AcctGatherEnergyType AcctGatherFilesystemType AcctGatherInfinibandType AcctGatherInterconnectType
    AcctGatherNodeFreq AcctGatherProfileType AllowSpecResourcesUsage AuthAltParameters AuthAltTypes AuthInfo
    AuthType BackupAddr BackupController BatchStartTimeout BcastExclude BcastParameters BurstBufferParameters
    BurstBufferType CertgenParameters CertgenType CertmgrParameters CertmgrType CliFilterParameters
    CliFilterPlugins ClusterName CommunicationParameters CompleteWait ControlAddr ControlMachine CoreSpecPlugin
    CpuFreqDef CpuFreqGovernors CredType CryptoType DataParserParameters DebugFlags DefCpuPerGPU DefMemPerCpu
    DefMemPerGPU DefMemPerNode DependencyParameters DisableRootJobs DownNodes EioTimeout EnforcePartLimits
    Epilog EpilogMsgTime EpilogSlurmctld EpilogTimeout ExtSensorsFreq ExtSensorsType FairShareDampeningFactor
    FastSchedule FederationParameters FirstJobId GetEnvTimeout GpuFreqDef GresTypes GroupUpdateForce
    GroupUpdateTime HashPlugin HealthCheckInterval HealthCheckNodeState HealthCheckProgram HealthCheckTimeout
    HttpParserType InactiveLimit InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams
    JobAcctGatherType JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompPort JobCompType
    JobCompUser JobContainerType JobCredentialPrivateKey JobCredentialPublicCertificate JobFileAppend JobRequeue
    JobSubmitPlugins KeepaliveTime KillOnBadExit KillWait LaunchParameters LaunchType LicenseParameters Licenses
    LogTimeFormat MailDomain MailProg MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCpu
    MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode MCSParameters MCSPlugin MessageTimeout
    MetricsAuthUsers MetricsParameters MetricsType MinJobAge MpiDefault MpiParams NamespaceType
    NodeFeaturesPlugins NodeName NodeSet OverTimeLimit PartitionName PluginDir PlugStackConfig PowerAction
    PowerParameters PowerPlugin PreemptExemptTime PreemptMode PreemptParameters PreemptType PrEpParameters
    PrEpPlugins PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge
    PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType
    PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize
    PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData ProctrackType Prolog
    PrologEpilogTimeout PrologFlags PrologSlurmctld PrologTimeout PropagatePrioProcess PropagateResourceLimits
    PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram
    ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun ResvProlog ReturnToService RoutePlugin
    SallocDefaultCommand SbcastParameters SchedulerParameters SchedulerTimeSlice SchedulerType ScronParameters
    SelectType SelectTypeParameters SlurmctldAddr SlurmctldDebug SlurmctldHost SlurmctldHttpAuthParameters
    SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPort SlurmctldPrimaryOffProg
    SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdHttpAuthParameters
    SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout
    SlurmdUser SlurmSchedLogFile SlurmSchedLogLevel SlurmUser SrunEpilog SrunPortRange SrunProlog
    StateSaveLocation SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendRate SuspendTime
    SuspendTimeout SwitchParameters SwitchType TaskEpilog TaskPlugin TaskPluginParam TaskProlog TCPTimeout
    TLSParameters TLSType TmpFS TopologyParam TopologyPlugin TrackWCKey TreeWidth UnkillableStepProgram
    UnkillableStepTimeout UrlParserType UsePam VSizeFactor Waittime X11Parameters
    """
)
NODE = _keys(
    """
    NodeName BcastAddr Boards CoreSpecCount CoresPerSocket CpuBind CPUs CpuSpecList Feature Features Gres
    GresConf MemSpecLimit NodeAddr NodeHostname Parameters Port Procs RealMemory Reason RestrictedCoresPerGPU
    Sockets SocketsPerBoard State SuspendTime ThreadsPerCore TmpDisk Topology TRESWeights Weight
    """
)
PARTITION = _keys(
    """
    PartitionName AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default DefaultTime
    DefCpuPerGPU DefMemPerCpu DefMemPerGPU DefMemPerNode DenyAccounts DenyQos DisableRootJobs Exclusive
    ExclusiveTopo ExclusiveUser GraceTime Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCpu MaxMemPerNode
    MaxNodes MaxTime MinNodes Nodes OverSubscribe OverTimeLimit PowerDownOnIdle PreemptMode Priority
    PriorityJobFactor PriorityTier QOS ReqResv ResumeTimeout RootOnly SelectTypeParameters Shared State
    SuspendTime SuspendTimeout Topology TRESBillingWeights
    """
)
NODE_SET = _keys(
    """
    NodeSet Feature Nodes
    """
)
DOWN_NODES = _keys(
    """
    DownNodes Reason State
    """
)
POWER_ACTION = _keys(
    """
    PowerAction Location Program
    """
)
# Values that must be a whole number, UNLIMITED or INFINITE.
NUMBERS = _keys(
    """
    AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout Boards CompleteWait CoreSpecCount CoresPerSocket
    CPUs DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode EioTimeout EpilogMsgTime EpilogTimeout
    FairShareDampeningFactor FastSchedule FirstJobId GraceTime GroupUpdateForce GroupUpdateTime
    HealthCheckInterval HealthCheckTimeout InactiveLimit JobCompPort JobFileAppend JobRequeue KeepAliveTime
    KillOnBadExit KillWait MaxArraySize MaxBatchRequeue MaxCPUsPerNode MaxCPUsPerSocket MaxDBDMsgs MaxJobCount
    MaxJobId MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxNodes MaxStepCount MaxTasksPerNode MemSpecLimit
    MessageTimeout MinJobAge MinNodes OverTimeLimit Priority PriorityJobFactor PriorityTier PriorityWeightAge
    PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
    Procs PrologEpilogTimeout PrologTimeout PropagatePrioProcess RealMemory RestrictedCoresPerGPU ResumeRate
    ResumeTimeout ResvOverRun ReturnToService SchedulerTimeSlice SlurmctldTimeout SlurmdPort SlurmdTimeout
    SlurmSchedLogLevel Sockets SocketsPerBoard SuspendRate SuspendTimeout TCPTimeout ThreadsPerCore TmpDisk
    TreeWidth UnkillableStepTimeout VSizeFactor WaitTime Weight
    """
)
# Values that must be YES or NO.
FLAGS = _keys(
    """
    AccountingStoreJobComment AllowSpecResourcesUsage Default DisableRootJobs ExclusiveTopo ExclusiveUser Hidden
    LLN PowerDownOnIdle PriorityFavorSmall ReqResv RootOnly TrackWCKey UsePAM
    """
)
CGROUP = _keys(
    """
    AllowedDevicesFile AllowedRAMSpace AllowedSwapSpace CgroupAutomount CgroupJobIdPaths CgroupMountpoint CgroupPlugin
    CgroupSlice ConstrainCores ConstrainDevices ConstrainRAMSpace ConstrainSwapSpace EnableControllers
    EnableExtraControllers IgnoreSystemd IgnoreSystemdOnFailure MaxRAMPercent MaxSwapPercent MemorySwappiness
    MinRAMSpace SignalChildrenProcesses SystemdTimeout
    """
)
GRES = _keys(
    """
    AutoDetect Cores Count CPUs File Flags Ignore Link Links MultipleFiles Name NodeName Type
    """
)

# The first key of each kind of record, and the keys that a record of that kind may have.
RECORDS = {
    "nodename": NODE,
    "partitionname": PARTITION,
    "nodeset": NODE_SET,
    "downnodes": DOWN_NODES,
    "poweraction": POWER_ACTION,
}

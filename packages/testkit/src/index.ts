// Helpers for testing programs that use Bullpen. They run handlers, pools and a broker without Redis, on a clock that the test
// moves.

// Waiting
export { eventually } from './eventually.ts'
// Time
export { type FakeClock, fakeClock } from './fake-clock.ts'
// Faults
export { type FaultProxy, faultProxy } from './fault-proxy.ts'
// Several tasks, in memory
export { memoryBroker } from './memory/memory-broker.ts'
export type { MemoryBroker, MemoryBrokerOptions, MemoryConsumerOptions } from './memory/memory-broker-options.ts'
export type { ConcurrencyKeyLimitChange } from './memory/store/key-limits.ts'
// One task
export type { LogLine } from './recording-log.ts'
export type { RunTaskOptions } from './run/run-options.ts'
export { runTask } from './run/run-task.ts'
export type { TaskRun } from './run/task-run.ts'
// One task, interrupted at every point
export { type EffectMethods, type EffectOptions, effect, effects } from './simulate/effect.ts'
export type { FaultyRun, SimulatedInterruption, SimulationFault } from './simulate/faults.ts'
export type { InterruptionKind } from './simulate/interruption.ts'
export type { Simulation } from './simulate/report.ts'
export { type SimulatedWorld, type SimulateOptions, simulate } from './simulate/simulate.ts'
export { SimulationError, type SimulationErrorCode } from './simulate/simulation-error.ts'
export { type MemoryPoolOptions, memoryPool, type TestPoolSettings } from './test-pool.ts'

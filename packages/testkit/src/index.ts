// Helpers for testing programs that use Bullpen. They run handlers, pools and a broker without Redis, on a clock that the test
// moves.

// Waiting
export { eventually } from './eventually.ts'
// Time
export { type FakeClock, fakeClock } from './fake-clock.ts'
// Faults
export { type FaultProxy, faultProxy } from './fault-proxy.ts'
// Several tasks, in memory
export {
  type MemoryBroker,
  type MemoryBrokerOptions,
  type MemoryConsumerOptions,
  memoryBroker,
} from './memory/memory-broker.ts'
// One task
export type { LogLine } from './recording-log.ts'
export type { RunTaskOptions } from './run/run-options.ts'
export { runTask } from './run/run-task.ts'
export type { TaskRun } from './run/task-run.ts'
export { type MemoryPoolOptions, memoryPool, type TestPoolSettings } from './test-pool.ts'

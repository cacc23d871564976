// BullMQ's side of Bullpen: the broker for producers, the pool for workers.
export { type BrokerOptions, type BullmqBroker, openBroker } from './broker.ts'
export { DEFAULT_NAMESPACE } from './keys.ts'
export { type DrainReport, makePool, type Pool, type PoolOptions } from './pool.ts'

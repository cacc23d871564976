// For users: an in-process broker, and a processor for teams that keep a BullMQ Worker of their own.

export type { PayloadCodec } from '@bullpen/engine'
export { openBroker } from './broker/broker.ts'
export type { BrokerOptions, BullmqBroker } from './broker/broker-options.ts'
export { type RedisOptions, redis } from './client/redis-transport.ts'
export { type PlainProcessor, type ProcessorOptions, processor } from './plain-processor.ts'
export { type BullpenBackendOptions, bullpenBackend } from './store/bullpen-backend.ts'
export { escaped } from './uncaught-errors.ts'

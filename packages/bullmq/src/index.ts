// What users of BullMQ's side may use: a broker in process, and a processor for a BullMQ Worker of their own.

export { escaped } from './attempt-context.ts'
export { type BrokerOptions, type BullmqBroker, openBroker } from './broker.ts'
export { backoffStrategy } from './internals/backoff-strategy.ts'
export { type PlainProcessor, type ProcessorOptions, processor } from './plain-processor.ts'

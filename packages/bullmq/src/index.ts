// BullMQ's side of Bullpen: the broker for producers, the pool for workers.

export { escaped } from './attempt-context.ts'
export { type BrokerOptions, type BullmqBroker, openBroker } from './broker.ts'
export { type SkewWatch, type SkewWatchOptions, watchSkew } from './clock/clock-skew.ts'
export { decodeStack } from './codec.ts'
export { type ConsumerOptions, openConsumer } from './consumer.ts'
export { type FleetOptions, openFleet } from './fleet/index.ts'
export { backoffStrategy } from './internals/backoff-strategy.ts'
export { type PlainProcessor, type ProcessorOptions, processor } from './plain-processor.ts'

// BullMQ's side of Bullpen: the broker for producers, the pool for workers.

export { type BrokerOptions, type BullmqBroker, openBroker } from './broker.ts'
export { decodeStack } from './codec.ts'
export { type FeedOptions, openFeed } from './feed.ts'
export { REDIS_SETTINGS } from './redis-settings.ts'

// For tests, users' and ours.
export { eventually } from './eventually.ts'
export { type FakeClock, fakeClock } from './fake-clock.ts'
export { freePort } from './free-port.ts'
export { privateRedis } from './private-redis.ts'
export { amount, type Scale, seeds } from './scale.ts'

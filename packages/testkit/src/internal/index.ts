// For this repository's own tests: not published, since it needs vitest and the scripts.
export { freePort } from './free-port.ts'
export { privateRedis } from './private-redis.ts'

// Runs the benchmarks on a Redis of their own. The arguments are theirs: npm run bench -- worker --json
import { join } from 'node:path'
import { foreground } from './foreground.mjs'
import { throwawayRedis } from './throwaway-redis.mjs'
import { explainAndExit } from './user-error.mjs'

const main = join(import.meta.dirname, '../tools/bench/src/main.ts')
const redis = await throwawayRedis('bench').catch(explainAndExit)
const env = { ...process.env, REDIS_URL: redis.url }
const code = await foreground(process.execPath, [main, ...process.argv.slice(2)], { env })
await redis.end()
process.exit(code)

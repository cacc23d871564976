// Runs the benchmarks on a Redis of their own. The arguments are theirs: npm run bench -- worker --json
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { foreground } from './foreground.mjs'
import { resolveRedis } from './redis.mjs'
import { explainAndExit } from './user-error.mjs'

const main = join(import.meta.dirname, '../apps/bench/src/main.ts')
const dataDir = mkdtempSync(join(tmpdir(), 'bullpen-bench-'))
const redis = await resolveRedis({ dataDir }).catch(explainAndExit)
const code = await foreground(process.execPath, [main, ...process.argv.slice(2)], {
  env: { ...process.env, REDIS_URL: redis.url },
})
await redis.stop()
rmSync(dataDir, { recursive: true, force: true })
process.exit(code)

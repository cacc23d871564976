// npm test: runs the tests once. --watch runs them again whenever a file is saved, and --full runs the full number of random
// cases. Other arguments are passed to vitest.
import { join } from 'node:path'
import { foreground } from './system/foreground.mjs'
import { helpOn } from './system/options.mjs'

const FULL = '--full'

const given = process.argv.slice(2)
helpOn(
  `npm test -- [--full] [--watch] [FILTER...]

Runs the test files whose path contains FILTER, or all of them, on a temporary Redis or, if REDIS_URL is set, on that
server.

  --full   run the full number of random cases, which takes many minutes
  --watch  run again whenever a file is saved

Other arguments are passed to vitest: npx vitest --help`,
  given,
)
const once = given.includes('--watch') ? [] : ['run']
const full = given.includes(FULL) ? ['--mode', 'full'] : []
const others = given.filter((arg) => arg !== FULL)
const modules = join(import.meta.dirname, '../node_modules')
const vitest = join(modules, 'vitest/vitest.mjs')
// The tests start several hundred processes, which spend most of their first second compiling the same modules.
process.env.NODE_COMPILE_CACHE ??= join(modules, '.cache/node-compile-cache')
process.exit(await foreground(process.execPath, [vitest, ...once, ...full, ...others]))

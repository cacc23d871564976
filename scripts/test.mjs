// npm test: runs the tests once, except the system tests. --watch runs them again whenever a file is saved, --all runs all tests, and
// --full runs all with the full number of random cases. Other arguments are passed to vitest.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { foreground } from './system/foreground.mjs'
import { helpOn } from './system/options.mjs'
import { run } from './system/programs.mjs'
import { excludedFiles } from './testing/system-tests.mjs'

const OWN = ['--all', '--full']
/** Together, these programs load nearly all modules that the programs of tests load. */
const PROGRAMS = ['apps/worker/src/main.ts', 'apps/api/src/main.ts', 'packages/cli/src/main.ts']

const given = process.argv.slice(2)
helpOn(
  `npm test -- [--all] [--full] [--watch] [FILTER...]

Runs the test files whose path contains FILTER, or all but the system tests, on a temporary Redis or, if REDIS_URL is set, on
that server. scripts/testing/system-tests.mjs lists the system tests: drills, builds, whole programs, clusters, browsers.

  --all    run the system tests too, as npm run ci does
  --full   run all tests with the full number of random cases, which takes many minutes
  --watch  run again whenever a file is saved

Other arguments are passed to vitest: npx vitest --help`,
  given,
)
const once = given.includes('--watch') ? [] : ['run']
const full = given.includes('--full') ? ['--mode', 'full'] : []
const others = given.filter((arg) => !OWN.includes(arg))
const excluded = excludedFiles(given).map((pattern) => `--exclude=${pattern}`)
const root = join(import.meta.dirname, '..')
const modules = join(root, 'node_modules')
const vitest = join(modules, 'vitest/vitest.mjs')
// The tests start several hundred processes, which would otherwise spend half of their processor time compiling the same modules. The
// first of them would do so at the same time, and a process that is killed does not keep what it has compiled.
const { NODE_COMPILE_CACHE: cache = join(modules, '.cache/node-compile-cache') } = process.env
process.env.NODE_COMPILE_CACHE = cache
if (!existsSync(cache)) {
  await Promise.all(PROGRAMS.map((file) => run(process.execPath, [join(root, file), '--help'])))
}
process.exit(await foreground(process.execPath, [vitest, ...once, ...full, ...excluded, ...others]))

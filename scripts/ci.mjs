// npm run ci: runs everything that CI checks. The run ends at the first step that fails.
import { foreground } from './system/foreground.mjs'
import { helpOn } from './system/options.mjs'

helpOn(
  'npm run ci\n\nChecks format, lint, import rules, Lua files, lock file, types and dead code, builds the packages and runs all tests.',
)

/** The steps, cheap ones first. The tests come last, so that their totals are the last line of the output. */
const STEPS = [
  [
    'format, lint and import walls',
    'biome',
    'ci',
    '--error-on-warnings',
    ...(process.stdout.isTTY ? [] : ['--colors=off']),
  ],
  ['Lua files', 'node', 'scripts/lua.mjs', '--check'],
  ['lock file', 'node', 'scripts/complete-lock.mjs', '--check'],
  ['types', 'tsc'],
  ['dead code', 'knip', '--no-config-hints'],
  ['build', 'turbo', 'run', 'build', '--output-logs=errors-only', '--ui=stream'],
  ['tests', 'node', 'scripts/test.mjs', '--all'],
]

const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1' }
for (const [name, command, ...args] of STEPS) {
  console.log(`\n== ${name}: ${[command, ...args].join(' ')}`)
  const start = performance.now()
  const code = await foreground(command, args, { env })
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  if (name === 'tests') process.exit(code)
  console.log(`== ${name}: ${code === 0 ? 'passed' : 'FAILED'}, ${seconds} s`)
  if (code !== 0) {
    console.log('\n0 passed, 1 failed')
    process.exit(code)
  }
}

// Everything that CI checks, in one command: each step is timed, and the first that fails ends it. Tests come last.
import { foreground } from './foreground.mjs'

/** Cheap steps first; the tests last, so that their numbers are the last line. */
const STEPS = [
  [
    'format, lint and import walls',
    'biome',
    'ci',
    '--error-on-warnings',
    ...(process.stdout.isTTY ? [] : ['--colors=off']),
  ],
  ['lock file', 'node', 'scripts/complete-lock.mjs', '--check'],
  ['types', 'tsc'],
  ['dead code', 'knip', '--no-config-hints'],
  ['build', 'turbo', 'run', 'build', '--output-logs=errors-only', '--ui=stream'],
  ['tests', 'node', 'scripts/test.mjs'],
]

const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1' }
for (const [name, command, ...args] of STEPS) {
  console.log(`\n== ${name}: ${[command, ...args].join(' ')}`)
  const start = performance.now()
  const code = await foreground(command, args, { env })
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  if (name === 'tests') process.exit(code) // their numbers are the last line
  console.log(`== ${name}: ${code === 0 ? 'fine' : 'FAILED'}, ${seconds} s`)
  if (code !== 0) {
    console.log('\n0 passed, 1 failed')
    process.exit(code)
  }
}

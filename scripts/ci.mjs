// Everything that CI checks, in one command: each step is timed, and the first that fails ends it. Tests come last.
import { foreground } from './foreground.mjs'

/** Cheap steps first; the tests last, so that their numbers are the last line. */
const STEPS = [
  ['format, lint and import walls', 'biome', 'ci', '--error-on-warnings'],
  ['lock file', 'node', 'scripts/complete-lock.mjs', '--check'],
  ['types', 'tsc'],
  ['dead code', 'knip'],
  ['build', 'turbo', 'run', 'build', '--output-logs=errors-only', '--ui=stream'],
  ['tests', 'node', 'scripts/test.mjs'],
]

const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1' }
for (const [name, command, ...args] of STEPS) {
  console.log(`\n== ${name}: ${[command, ...args].join(' ')}`)
  const start = performance.now()
  const code = await foreground(command, args, { env })
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  if (code !== 0) {
    console.error(`\n== ${name} failed after ${seconds} s`)
    process.exit(code)
  }
  if (name !== 'tests') console.log(`== ${name}: fine, ${seconds} s`)
}

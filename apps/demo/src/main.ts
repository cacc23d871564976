// Runs the demo with the arguments, streams and signals of this process.
import { demo } from './demo.ts'

const { argv, env, stdout, stderr } = process
// A closed pipe is handled in the function that writes the list.
for (const stream of [stdout, stderr]) stream.on('error', () => {})
const interrupted = new AbortController()
// A second signal ends this process at once, and the run continues.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => interrupted.abort())
process.exitCode = await demo({ argv: argv.slice(2), env, stdout, stderr, signal: interrupted.signal })

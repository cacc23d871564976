// Runs the demo on this process's arguments and streams.
import { demo } from './demo.ts'

const { argv, env, stdout, stderr } = process
// A closed pipe is handled where the list is written.
for (const stream of [stdout, stderr]) stream.on('error', () => {})
process.exitCode = await demo({ argv: argv.slice(2), env, stdout, stderr })

// Runs the demo with the arguments and streams of this process.
import { demo } from './demo.ts'

const { argv, env, stdout, stderr } = process
// A closed pipe is handled in the function that writes the list.
for (const stream of [stdout, stderr]) stream.on('error', () => {})
process.exitCode = await demo({ argv: argv.slice(2), env, stdout, stderr })

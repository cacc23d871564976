// Runs the demo on this process's arguments and streams.
import { demo } from './demo.ts'

const { argv, env, stdout, stderr } = process
// A reader that leaves is noticed where the list is written; nobody is left to tell when it was the screen.
for (const stream of [stdout, stderr]) stream.on('error', () => {})
process.exitCode = await demo({ argv: argv.slice(2), env, stdout, stderr })

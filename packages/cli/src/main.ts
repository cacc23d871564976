#!/usr/bin/env node
// Runs bullpen with the arguments and streams of this process.
import { bullpen } from './program.ts'

const { argv, env, stdin, stdout, stderr } = process
// A closed pipe is handled in the functions that write output.
for (const stream of [stdout, stderr]) stream.on('error', () => {})
process.exitCode = await bullpen({ argv: argv.slice(2), env, stdin, stdout, stderr, now: Date.now })

#!/usr/bin/env node
// Runs bullpen with the arguments and streams of this process.
import { bullpen } from './program.ts'

const { argv, env, stdin, stdout, stderr } = process
// The functions that write to standard output handle its errors. An error that standard error cannot show has nowhere else to go.
for (const stream of [stdout, stderr]) stream.on('error', () => {})
process.exitCode = await bullpen({ argv: argv.slice(2), env, stdin, stdout, stderr, now: Date.now })

#!/usr/bin/env node
// Runs bullpen on this process's arguments and streams.
import { bullpen } from './program.ts'

const { argv, env, stdin, stdout, stderr } = process
// A closed pipe is handled where output is written.
for (const stream of [stdout, stderr]) stream.on('error', () => {})
process.exitCode = await bullpen({ argv: argv.slice(2), env, stdin, stdout, stderr, now: Date.now })

#!/usr/bin/env node
// Runs bullpen with the arguments and streams of this process.
import { enableCompileCache } from 'node:module'

// Without the cache, compiling the modules takes half of the time of a short command. It applies only to modules that are imported later.
enableCompileCache()
const { bullpen } = await import('./program.ts')

const { argv, env, stdin, stdout, stderr } = process
// The functions that write to standard output handle its errors. An error that standard error cannot show has nowhere else to go.
for (const stream of [stdout, stderr]) stream.on('error', () => {})
process.exitCode = await bullpen({ argv: argv.slice(2), env, stdin, stdout, stderr, events: process, now: Date.now })

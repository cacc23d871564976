// Runs every test there is, once; with --watch, again whenever a file is saved. Other arguments are vitest's.
import { join } from 'node:path'
import { foreground } from './foreground.mjs'

const args = process.argv.slice(2)
const mode = args.includes('--watch') ? [] : ['run']
const vitest = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs')
process.exit(await foreground(process.execPath, [vitest, ...mode, ...args]))

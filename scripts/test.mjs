// Runs every test there is, once; with --watch, again whenever a file is saved; with --full, in their full amounts.
// Other arguments are vitest's.
import { join } from 'node:path'
import { foreground } from './foreground.mjs'

const FULL = '--full'

const given = process.argv.slice(2)
const once = given.includes('--watch') ? [] : ['run']
const full = given.includes(FULL) ? ['--mode', 'full'] : []
const others = given.filter((arg) => arg !== FULL)
const vitest = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs')
process.exit(await foreground(process.execPath, [vitest, ...once, ...full, ...others]))

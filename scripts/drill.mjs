// npm run drill: the reliability drills. Each starts a Redis of its own. The arguments are theirs: npm run drill -- kill
import { join } from 'node:path'
import { foreground } from './system/foreground.mjs'
import { helpOn } from './system/options.mjs'

helpOn(`npm run drill -- NAME|all [--seed N] [--scale small|full] [--peer] [--json]

Kills, restarts and disconnects processes under load, and counts what was lost. Without NAME, the names are listed.`)

const main = join(import.meta.dirname, '../tools/drill/src/main.ts')
process.exit(await foreground(process.execPath, [main, ...process.argv.slice(2)]))

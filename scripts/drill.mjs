// npm run drill: runs the reliability drills, each on its own Redis, and passes its arguments on, as in `npm run drill -- kill`.
import { join } from 'node:path'
import { foreground } from './system/foreground.mjs'
import { helpOn } from './system/options.mjs'

helpOn(`npm run drill -- NAME|all [--seed N] [--scale small|full] [--peer] [--json]

Kills, restarts and disconnects processes under load, and counts the tasks that were lost. Without NAME, lists the drills.`)

const main = join(import.meta.dirname, '../tools/drill/src/main.ts')
process.exit(await foreground(process.execPath, [main, ...process.argv.slice(2)]))

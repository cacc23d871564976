// Runs the reliability drills, each on a Redis of its own. The arguments are theirs: npm run drill -- kill --seed 7 --json
import { join } from 'node:path'
import { foreground } from './foreground.mjs'

const main = join(import.meta.dirname, '../tools/drill/src/main.ts')
process.exit(await foreground(process.execPath, [main, ...process.argv.slice(2)]))

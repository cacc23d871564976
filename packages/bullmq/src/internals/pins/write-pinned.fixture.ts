// Writes the table of what Bullpen relies on in the installed BullMQ to pinned.fixture.ts.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pinned } from './compare.fixture.ts'
import { installedBullmq, readInterior } from './interior.fixture.ts'

const HEADER = `// What Bullpen relies on in its version of BullMQ: hashes of texts, and what BullMQ sends to its scripts. Written by
// \`npm run test:next -- --accept\` after an upgrade, once every difference has been looked at.
import type { PinnedInterior } from './compare.fixture.ts'
`

/** The file still has to be formatted. Returns its path. */
export async function writePinned(): Promise<string> {
  const table = pinned(await readInterior(installedBullmq()))
  const file = join(import.meta.dirname, 'pinned.fixture.ts')
  writeFileSync(file, `${HEADER}\nexport const PINNED: PinnedInterior = ${JSON.stringify(table, null, 2)}\n`)
  return file
}

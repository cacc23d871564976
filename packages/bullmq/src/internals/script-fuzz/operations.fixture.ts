// All operations of the fuzz, and the scripts that none of them needs to send.
import { ownScripts } from '../../scripts/all-scripts.fixture.ts'
import type { FuzzOperations } from './operation.fixture.ts'
import { ATTEMPTS } from './operations/attempts.fixture.ts'
import { COLLECTIONS } from './operations/collections.fixture.ts'
import { ENQUEUES } from './operations/enqueues.fixture.ts'
import { HOUSEKEEPING } from './operations/housekeeping.fixture.ts'
import { OWN_QUEUE } from './operations/own-queue.fixture.ts'
import { REQUESTS } from './operations/requests.fixture.ts'

export const FUZZ_OPERATIONS: FuzzOperations = {
  // Some of those that follow take the place of others.
  ...OWN_QUEUE,
  ...ENQUEUES,
  ...ATTEMPTS,
  ...REQUESTS,
  ...COLLECTIONS,
  ...HOUSEKEEPING,
}

/** Scripts that change something and that no operation sends, with the reason. */
const EXEMPT: Readonly<Record<string, string>> = {
  'probe-primary': 'it writes nothing',
  'probe-node': 'it writes nothing',
  'take-lease': 'the world has no leader but the one that its operations call',
  resign: 'the world has no leader but the one that its operations call',
}

/** Returns the scripts that change something, and that nothing has sent although they are not exempt. */
export function unsentScripts(senders: ReadonlyMap<string, unknown>): readonly string[] {
  return ownScripts.flatMap(({ name, lua }) => {
    const short = name.replace('bullpen:', '')
    const onlyReads = lua.startsWith('#!lua flags=no-writes')
    return onlyReads || short in EXEMPT || senders.has(short) ? [] : [short]
  })
}

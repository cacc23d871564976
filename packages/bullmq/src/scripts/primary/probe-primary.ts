// Finds out whether a server is a primary.
import { defineScript } from '../script.ts'

/** Redis refuses this script on a read-only replica, although it writes nothing, because it is not of the kind `reads`. O(1). */
export const probePrimary = defineScript({ name: 'probe-primary', kind: 'frees', keys: [], args: [], lua: 'return 1' })

// Finds out whether a server is a primary that accepts writes.
import { defineScript } from '../script.ts'

/**
 * Redis refuses this script on a read-only replica, and whenever it refuses writes, although the script writes nothing, because it is not
 * of the kind `reads`. Redis runs it at `maxmemory`. O(1).
 */
export const probePrimary = defineScript({ name: 'probe-primary', kind: 'frees', keys: [], args: [], lua: 'return 1' })

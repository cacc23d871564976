// Finds out whether the cluster node that has a key accepts writes.
import { defineScript } from '../script.ts'

/**
 * Redis refuses this script when it refuses writes, as it does with `probe-primary`. O(1).
 *
 * - KEYS: any key, which decides the node
 */
export const probeNode = defineScript({
  name: 'probe-node',
  kind: 'frees',
  keys: ['anchor'],
  args: [],
  lua: 'return 1',
})

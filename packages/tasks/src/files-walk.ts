// files.walk: finds the regular files below a directory.
import { defineSource } from '@bullpen/contract'
import { z } from 'zod'
import { absolutePath, fileTree } from './path-schema.ts'

export const filesWalk = defineSource({
  name: 'files.walk',
  queue: 'files',
  summary: 'Finds the regular files below a directory, in the order of their paths. Symbolic links are not followed.',
  input: fileTree,
  item: z.object({ path: absolutePath }),
  retry: { maxAttempts: 3, backoff: { initialDelay: '500ms', maxDelay: '10s' } },
})

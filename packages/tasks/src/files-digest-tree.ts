// files.digest-tree: computes one MD5 for all regular files below a directory.
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { absolutePath, md5 } from './path-schema.ts'

export const filesDigestTree = defineTask({
  name: 'files.digest-tree',
  queue: 'files',
  kind: 'long',
  summary: 'Computes the MD5 of the list that md5sum prints for the sorted regular files below a directory.',
  input: z.object({ path: absolutePath }),
  output: z.object({
    files: z.int().nonnegative(),
    bytes: z.int().nonnegative(),
    md5: md5.describe('The MD5 that `find DIR -type f -print0 | LC_ALL=C sort -z | xargs -r0 md5sum | md5sum` prints.'),
  }),
  timeout: '2h',
  retry: { maxAttempts: 2, backoff: { initialDelay: '1s', maxDelay: '10s' } },
})

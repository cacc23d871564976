// files.digest: computes the MD5 and the size of one regular file.
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { absolutePath, md5 } from './path-schema.ts'

export const filesDigest = defineTask({
  name: 'files.digest',
  queue: 'files',
  kind: 'long',
  summary: "Computes the MD5 and the size of one regular file below the worker's roots.",
  input: z.object({ path: absolutePath }),
  output: z.object({
    path: absolutePath.describe("The input's path."),
    md5,
    bytes: z.int().nonnegative(),
    worker: z.string().describe('The host and the process id of the worker that has read the file.'),
    starts: z.int().positive().describe('How often the task was started: more than once if a worker died meanwhile.'),
  }),
  // This is enough for 36 GB at 20 MB/s, the speed of a slow network disk.
  timeout: '30m',
  retry: { maxAttempts: 3, backoff: { initialDelay: '500ms', maxDelay: '10s' } },
})

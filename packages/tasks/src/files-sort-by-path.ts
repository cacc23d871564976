// files.sort-by-path: sorts the digests of all files below a directory by their paths.
import { defineReducer } from '@bullpen/contract'
import { z } from 'zod'
import { filesDigest } from './files-digest.ts'
import { fileTree, md5 } from './path-schema.ts'

export const filesSortByPath = defineReducer({
  name: 'files.sort-by-path',
  queue: 'files',
  summary: 'Sorts the digests of the files below a directory as `LC_ALL=C sort` sorts their paths.',
  input: fileTree,
  item: filesDigest.output,
  output: z.object({
    files: z.array(z.object({ path: z.string().describe('The path relative to the directory.'), md5 })),
    bytes: z.int().nonnegative().describe('The size of all files together.'),
    workers: z.array(z.string()).describe('The workers that have read files.'),
    startedAgain: z.int().nonnegative().describe('How many files had a task that was started more than once.'),
  }),
  timeout: '10m',
  retry: { maxAttempts: 3, backoff: { initialDelay: '500ms', maxDelay: '10s' } },
})

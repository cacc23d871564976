// The settings of the example handlers' resources.

import { isAbsolute, resolve } from 'node:path'
import type { SettingsTable } from '@bullpen/config'
import { z } from 'zod'

export const RESOURCE_SETTINGS = {
  filesRoots: {
    env: 'BULLPEN_WORKER_FILES_ROOTS',
    schema: z.preprocess(
      (given) => (typeof given === 'string' ? given.split(':').filter((root) => root !== '') : given),
      z
        .array(
          z
            .string()
            .refine(isAbsolute, 'a root is an absolute path; several are separated by colons')
            .transform((root) => resolve(root)),
        )
        .default([]),
    ),
    help: 'Directories, separated by colons, below which files may be read. None: no file may.',
  },
  receiptEndpoint: {
    env: 'BULLPEN_WORKER_RECEIPT_ENDPOINT',
    schema: z.url({ protocol: /^https?$/, error: 'it is an http or https URL' }).optional(),
    help: 'Where receipt.send delivers to. Unset: receipts are refused.',
  },
} as const satisfies SettingsTable

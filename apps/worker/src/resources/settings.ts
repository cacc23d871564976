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
            .refine(isAbsolute)
            .transform((root) => resolve(root)),
        )
        .default([]),
    ),
    expected: 'absolute paths separated by colons',
    help: 'The directories whose files tasks may read, separated by colons. If unset, tasks may not read any files.',
  },
  receiptEndpoint: {
    env: 'BULLPEN_WORKER_RECEIPT_ENDPOINT',
    schema: z.url({ protocol: /^https?$/ }).optional(),
    expected: 'an http or https URL',
    secret: true,
    help: 'The URL to which receipt.send delivers receipts. If unset, receipts are rejected.',
  },
} as const satisfies SettingsTable

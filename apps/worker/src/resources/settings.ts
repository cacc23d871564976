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
    help: 'The directories, separated by colons, whose files tasks may read. Unset: none.',
  },
  receiptEndpoint: {
    env: 'BULLPEN_WORKER_RECEIPT_ENDPOINT',
    schema: z.url({ protocol: /^https?$/ }).optional(),
    expected: 'an http or https URL',
    secret: true,
    help: 'The URL that receipt.send delivers to. Unset: receipts are refused.',
  },
} as const satisfies SettingsTable

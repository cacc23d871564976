// The configuration tables say what the programs' own tables say: every setting once, and none that does not exist.
import { flagOf, type SettingsTable } from '@bullpen/config'
import { describe, expect, it } from 'vitest'
import { RESOURCE_SETTINGS } from '../apps/worker/src/resources/settings.ts'
import { API_SETTINGS } from '../packages/config/src/api-settings.ts'
import { WORKER_SETTINGS } from '../packages/config/src/worker-settings.ts'
import { rows, section } from './markdown-tables.ts'

const TABLES: readonly [heading: string, settings: SettingsTable][] = [
  ['The API', API_SETTINGS],
  ['The worker', WORKER_SETTINGS],
  ["The example handlers' resources", RESOURCE_SETTINGS],
]

function defaultOf({ schema }: SettingsTable[string]): string {
  const value: unknown = schema.safeParse(undefined).data
  return value === undefined || (Array.isArray(value) && value.length === 0) ? 'unset' : String(value)
}

describe('docs/configuration.md', () => {
  it.each(TABLES)('lists the settings under "%s" as they are in the code', (heading, settings) => {
    const expected = Object.entries(settings).map(([name, setting]) => [
      name,
      setting.env,
      flagOf(name),
      defaultOf(setting),
      setting.help,
    ])
    expect(rows(section('configuration.md', heading))).toEqual(expected)
  })
})

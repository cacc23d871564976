// What `--help` prints: every setting of a program with its flag, variable, default and meaning.
import { flagOf, type Setting, type SettingsTable } from './settings.ts'

export function helpOf(program: string, table: SettingsTable): string {
  const settings = Object.entries(table).map(
    ([name, setting]) => `  ${flagOf(name)}, ${setting.env}\n      ${setting.help} Default: ${defaultOf(setting)}.`,
  )
  return [
    `Settings of the ${program}. Each is read from its flag, else its environment variable, else the JSON file that --config or`,
    'BULLPEN_CONFIG names, else its default.',
    '',
    ...settings,
  ].join('\n')
}

function defaultOf({ schema }: Setting): string {
  const value: unknown = schema.safeParse(undefined).data
  return value === undefined || (Array.isArray(value) && value.length === 0) ? 'unset' : String(value)
}

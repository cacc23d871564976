// Builds the text that `--help` prints, with the flag, variable, description and default of every setting.
import { flagOf, type Setting, type SettingsTable } from './settings.ts'

export function helpOf(program: string, table: SettingsTable): string {
  const settings = Object.entries(table).map(
    ([name, setting]) => `  ${flagOf(name)}, ${setting.env}\n      ${setting.help} Default: ${defaultOf(setting)}.`,
  )
  return [
    `Settings of the ${program}. The value of a setting comes from the first of these sources that has one: its flag, its environment`,
    'variable, the JSON file named by --config or BULLPEN_CONFIG, and its default.',
    '',
    ...settings,
  ].join('\n')
}

function defaultOf({ schema }: Setting): string {
  const value: unknown = schema.safeParse(undefined).data
  return value === undefined || (Array.isArray(value) && value.length === 0) ? 'unset' : String(value)
}

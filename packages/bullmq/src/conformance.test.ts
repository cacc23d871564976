import { brokerConformance } from '@bullpen/testing'
import { openBullmq } from './backend.fixture.ts'

brokerConformance('BullMQ', openBullmq)

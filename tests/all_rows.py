"""Every row of every table."""

import nn_table
import op_table

ROWS = [*op_table.ROWS, *nn_table.ROWS]
